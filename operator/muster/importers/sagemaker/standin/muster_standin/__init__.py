"""A stand-in for the SageMaker SDK and boto3: it records a launch script's training jobs and sends no requests.

It runs in the script's Python (3.9 or newer) and uses only the standard library, not muster.
"""
