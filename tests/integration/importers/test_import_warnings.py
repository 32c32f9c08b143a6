"""Parts of a launch script that are not in the job: warnings on standard error, with their lines."""

import pytest

from support.import_runs import ImportFolder

WARNINGS = [
    ("p = pytorch(); p.fit(); p.deploy(1, 'ml.m5.xlarge').predict([1])", "muster skips PyTorch.deploy()"),
    (
        "sagemaker.Session().upload_data('train.py', key_prefix='x'); pytorch().fit()",
        "aws s3 cp train.py s3://sagemaker-us-west-2-111122223333/x/train.py",
    ),
    ("import boto3; boto3.client('s3').put_object(Body=b''); pytorch().fit()", "put_object(), because it"),
    ("pytorch(train_max_run=60).fit()", "PyTorch(train_max_run=...): SDK 2's name is max_run"),
    ("p = pytorch(); p.instance_cout = 3; p.fit()", "PyTorch.instance_cout = ... has no effect"),
    (
        "pytorch(role='SageMakerRole').fit()",
        "muster uses arn:aws:iam::111122223333:role/SageMakerRole for SageMakerRole",
    ),
    ("pytorch(checkpoint_local_path='/x').fit()", "muster ignores this without checkpoint_s3_uri"),
    ("pytorch(distribution={'torchdistributed': {'enabled': True}}).fit()", "did you mean torch_distributed?"),
    (
        "pytorch(distribution={'mpi': {'enabled': True, 'process_per_host': 2}}).fit()",
        "muster ignores process_per_host of mpi, as the SDK does; did you mean processes_per_host?",
    ),
    ("pytorch(distribution={'pytorchddp': {'enable': True}}).fit()", "muster ignores enable of pytorchddp"),
    (
        "pytorch(environment={'HF_TOKEN': 'hf_1'}).fit()",
        "HF_TOKEN: may be a secret, and the file contains its value",
    ),
    ("pytorch(hyperparameters={'hub-api-key': 'k'}).fit()", "hub-api-key: may be a secret"),
]


@pytest.mark.parametrize(("script", "message"), WARNINGS, ids=[message[:40] for _, message in WARNINGS])
def test_it_is_a_warning_and_the_job_is_printed(import_folder: ImportFolder, script: str, message: str) -> None:
    outcome = import_folder.run(script)
    assert outcome.err.startswith(("warning: launch.py:10: ", "warning: launch.py:9: "))
    assert message in outcome.err
    assert (outcome.code, len(outcome.jobs)) == (0, 1)


def test_a_way_that_is_not_enabled_stays_off_as_with_the_sdk(import_folder: ImportFolder) -> None:
    outcome = import_folder.run("pytorch(distribution={'pytorchddp': {'enable': True}}).fit()")
    assert outcome.block["distribution"] == {"pytorchDdp": {"enabled": False}}
    assert outcome.spec["launcher"] == {"perNode": {}}


def test_a_right_script_is_imported_without_a_word(import_folder: ImportFolder) -> None:
    script = "pytorch(hyperparameters={'tokenizer': 'x'}).fit('s3://my-bucket/train', wait=False)"
    assert import_folder.run(script).err == ""
