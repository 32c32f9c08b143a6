"""Downloads one channel, as a process that can be killed: URL of S3, URI of the data, folder."""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from pathlib import Path

from fakes import s3_server
from muster.render.storage.storage_plan import S3Channel, StoragePlan
from muster.storage.dependencies import StorageDependencies
from muster.storage.node_download import download_node
from muster.storage.node_folders import make_node_folders
from muster.storage.s3.bucket import make_s3_client

url, uri, root = sys.argv[1:]
os.environ.update({**s3_server.ENVIRONMENT, "AWS_ENDPOINT_URL_S3": url})
plan = StoragePlan("vit", 1, (S3Channel(0, "train", uri, is_sharded=False),))
dependencies = StorageDependencies(
    get_s3_client=cache(make_s3_client), sleep=time.sleep, clock=time.time, report=lambda _: None
)
download_node(plan, 0, make_node_folders(Path(root)), None, dependencies)
