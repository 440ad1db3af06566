"""Parses OpenMetrics on stdin as the reference parser does, and prints the families as JSON."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def exemplar(sample):
    found = sample.exemplar
    return found and {"labels": found.labels, "value": found.value, "at": float(found.timestamp)}


def rows(family):
    for sample in family.samples:
        yield {"name": sample.name, "labels": sample.labels, "value": sample.value, "exemplar": exemplar(sample)}


families = text_string_to_metric_families(sys.stdin.read())
json.dump([{"name": family.name, "type": family.type, "unit": family.unit, "samples": list(rows(family))} for family in families], sys.stdout)
