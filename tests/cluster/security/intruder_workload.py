"""Runs in a pod, sent to its Python: sends the requests from standard input to the collector, and prints the answers."""

import http.client
import json
import os
import ssl
import sys
from urllib.parse import urlsplit

wanted = json.load(sys.stdin)
url = urlsplit(wanted["url"])
trust = ssl.create_default_context(cadata=wanted["authority"])
answers = []
for each in wanted["requests"]:
    connection = http.client.HTTPSConnection(url.hostname, url.port, timeout=10, context=trust)
    headers = {}
    token = each["token"]
    if token == "own":
        with open("/muster/token") as file:
            token = file.read().strip()
    if token is not None:
        headers["Authorization"] = "Bearer " + token
    connection.request(each["method"], each["path"], each["body"], headers)
    answer = connection.getresponse()
    answers.append([answer.status, answer.read().decode()])
    connection.close()
json.dump(answers, sys.stdout)
