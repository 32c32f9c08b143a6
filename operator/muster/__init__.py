"""muster: distributed training jobs from one Kubernetes resource, and the truth about every rank."""
