"""Turn classes into released columns, and write what accompanies a release."""
