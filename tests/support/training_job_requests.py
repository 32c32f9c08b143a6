"""The smallest requests for training jobs that SageMaker accepts."""


def make_training_job_request(name: str, **changes: object) -> dict[str, object]:
    request: dict[str, object] = {
        "TrainingJobName": name,
        "AlgorithmSpecification": {"TrainingImage": "image:1", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::111122223333:role/SageMakerRole",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "ResourceConfig": {"InstanceType": "ml.g5.2xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "Tags": [{"Key": "muster.dev/job-uid", "Value": "uid-1"}],
    }
    return request | changes
