# The operator's image: a virtual environment on a slim Python, and nothing else (docs/install.md).
#
# The cluster tests build it too, without Docker (tests/cluster/operator_image.py), on Debian's own Python: the steps
# may count on `python3` and its `venv`, and on no other name.

# A tag moves. Who wants the same image again names the base by its digest: docs/install.md.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE} AS base

FROM base AS dependencies
WORKDIR /build
# pip is a tool of the build: what is shipped has none.
RUN python3 -m venv tools && python3 -m venv --without-pip /opt/muster
COPY requirements/base.txt requirements/cluster.txt requirements/aws.txt requirements/
# Compiled here, for nothing can be written where it runs. Unchecked: a layer's times are not the files'.
RUN tools/bin/pip --python /opt/muster/bin/python3 install --no-compile --only-binary :all: --require-hashes \
      --requirement requirements/base.txt --requirement requirements/cluster.txt --requirement requirements/aws.txt \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/muster/lib

FROM dependencies AS builder
COPY requirements/build.txt requirements/
RUN tools/bin/pip install --only-binary :all: --require-hashes --requirement requirements/build.txt

# What agents bring into images without a Python: this one, moved to where pods will mount it (docs/decisions/0013).
FROM builder AS agent-python
COPY tools/muster_dev/own_python.py tools/muster_dev/own_python_copier.py tools/muster_dev/
COPY training/muster_worker training/muster_worker
RUN PATH=/build/tools/bin:$PATH python3 tools/muster_dev/own_python.py /muster-python \
    && /muster-python/bin/python3 -I -c 'import ctypes, ssl'

FROM builder AS build
COPY pyproject.toml README.md LICENSE ./
COPY operator/muster operator/muster
COPY training/muster_worker training/muster_worker
RUN tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && tools/bin/pip --python /opt/muster/bin/python3 install --no-compile --no-deps --prefix /build/muster dist/*.whl \
    && python3 -m compileall -q --invalidation-mode unchecked-hash muster/lib

FROM base
LABEL org.opencontainers.image.title="muster" \
      org.opencontainers.image.description="Distributed training jobs from one Kubernetes resource" \
      org.opencontainers.image.licenses="Apache-2.0"
# A change of muster's own code is the last layer, which has 10 MB.
COPY --from=agent-python /muster-python /muster-python
COPY --from=dependencies /opt/muster /opt/muster
COPY --from=build /build/muster /opt/muster
# LOGNAME: kopf asks who it is, and the user below, being a number, has no name that the system knows.
ENV PATH=/opt/muster/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    LOGNAME=muster \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1
WORKDIR /tmp
# A number: a kubelet that is told runAsNonRoot can't tell who a name is.
USER 65532:65532
ENTRYPOINT ["muster"]
CMD ["operator"]
