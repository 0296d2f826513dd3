"""The audit: does a finished release hold what its policy asks for?"""
