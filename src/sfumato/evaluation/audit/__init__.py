"""The audit: does a finished release meet its policy?"""
