"""A stand-in for the SageMaker SDK and boto3 in the process of a launch script: it records, and sends nothing.

It runs in the script's own Python, 3.9 or newer: standard library only, without the rest of muster.
"""
