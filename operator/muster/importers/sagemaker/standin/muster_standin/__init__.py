"""Stands where the SageMaker SDK and boto3 would, in the process of a launch script: records, and sends nothing.

It runs in the script's own Python, 3.9 or newer: standard library only, and nothing of muster.
"""
