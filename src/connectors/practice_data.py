#!/usr/bin/env python3
"""A client of Practice Data in one file, for Python 3.9 or later, on the standard library alone.

    python3 practice_data.py read charges '{"status": "open"}'
    python3 practice_data.py copy practice.db
    python3 practice_data.py send '{"invoices": [{"invoice_id": "invoice_1"}]}'

PRACTICE_DATA_URL is the address of the service. `read` and `copy` take PRACTICE_DATA_API_KEY, `send` takes
PRACTICE_DATA_ORGANIZATION and, to sign, PRACTICE_DATA_SECRET.
"""
import base64
import email.utils
import hmac
import http.client
import json
import os
import random
import re
import sqlite3
import sys
import time
import urllib.error
import urllib.request
import uuid

RETRIED = {408, 429, 502, 503, 504}


class PracticeDataError(Exception):
    """A response other than a success. `status` is 0 if there was none. `code` names the error: decide on it."""

    def __init__(self, status, message, code=None):
        super().__init__(message)
        self.status = status
        self.code = code


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Another host would get the key."""

    def redirect_request(self, *args):
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _origin(url):
    """The address before /api."""
    if not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", url.strip()):
        raise ValueError("The address must be such as https://practice-data.example, without a user or a query")
    return re.sub(r"/api/v[13]$", "", url.strip().rstrip("/"))


def _printable(name, text):
    """A text without white space at its ends, as files have. No message shows it: it may be a key."""
    text = text.strip()
    if not re.fullmatch(r"[\x20-\x7e]+", text):
        raise ValueError(f"The {name} must have printable ASCII characters only")
    return text


def _seconds(headers):
    """The Retry-After of a response: seconds, or a date by the clock of the response."""
    after = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d+(\.\d*)?", after):
        return float(after)
    try:
        until, now = (email.utils.parsedate_to_datetime(text) for text in (after, headers.get("Date", "")))
        return max(0, (until - now).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return 0


def _text(response, timeout):
    """The body of a response, within ten times the timeout: that of the connection begins again with each byte."""
    end = time.monotonic() + 10 * timeout
    pieces = []
    while piece := response.read1(65536):
        pieces.append(piece)
        if time.monotonic() > end:
            raise TimeoutError(f"its body takes more than {10 * timeout} seconds")
    return b"".join(pieces)


def _member(response, *names):
    """The first of these members that a response has. What is at the address may be another service."""
    for name in names:
        if isinstance(response, dict) and name in response:
            return response[name]
    raise PracticeDataError(200, f"A response that is not of Practice Data: it has no {names[-1]}")


def _post(url, body, headers_of, timeout=60, retries=4):
    data = json.dumps(body).encode()
    for attempt in range(retries + 1):
        headers = {"Content-Type": "application/json", "Accept": "application/json", **headers_of(data)}
        wait = 0
        try:
            with _opener.open(urllib.request.Request(url, data, headers, method="POST"), timeout=timeout) as response:
                return json.loads(_text(response, timeout))
        except urllib.error.HTTPError as error:
            try:
                text = error.read(500).decode("utf-8", "replace")
            except (OSError, http.client.HTTPException):
                text = "its body was cut"
            wait = _seconds(error.headers)
            failure = PracticeDataError(error.code, f"{error.code} from {url}: {text}", error.headers.get("x-error"))
            if error.code not in RETRIED or wait > 60:
                raise failure from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            failure = PracticeDataError(0, f"No response from {url}: {error}")
        if attempt < retries:
            time.sleep(wait + random.random() * min(8, 0.5 * 2**attempt))
    raise failure


class PracticeData:
    """Reads the records of the organization of an API key."""

    def __init__(self, url, api_key, retries=4):
        self._url = _origin(url) + "/api/v3"
        self._headers = {"Authorization": "Bearer " + _printable("API key", api_key)}
        self._retries = retries

    def post(self, path, body=None):
        """The response of any path below /api/v3."""
        return _post(self._url + path, body or {}, lambda _: self._headers, retries=self._retries)

    def search(self, resource, **filters):
        """One page of records, or of objects of the payment processor."""
        return _member(self.post(f"/{resource}/search", filters), "data", "body")

    def get(self, resource, id):
        """One record. Raises PracticeDataError with status 404 if there is none."""
        return self.post(f"/{resource}/get", {"id": id})

    def changes(self, cursor=None, resources=None, limit=1000):
        """Pages of the changes of all resources after a cursor; without one, all records first."""
        request = {"limit": limit, **({"resources": resources} if resources else {})}
        while True:
            page = self.post("/changes", {**request, **({"cursor": cursor} if cursor else {})})
            cursor, has_more, _ = (_member(page, name) for name in ("cursor", "has_more", "body"))
            yield page
            if not has_more:
                return


def copy(client, path, restarts=4):
    """Brings a SQLite file up to date: each record as JSON, by resource and id. Returns the number of changes."""
    database = sqlite3.connect(path)
    with database:
        database.execute(
            "create table if not exists records"
            " (resource text, id text, record text, stale integer not null default 0, primary key (resource, id))"
        )
        database.execute("create table if not exists progress (only integer primary key check (only = 1), cursor text)")
        database.execute("insert or ignore into progress values (1, null)")
    upsert = (
        "insert into records (resource, id, record) values (?, ?, ?)"
        " on conflict (resource, id) do update set record = excluded.record, stale = 0"
    )
    (cursor,) = database.execute("select cursor from progress").fetchone()
    applied = 0

    def move(to):
        """Moves the progress, unless another process has: an older page over a newer one would lose changes."""
        moved = database.execute("update progress set cursor = ? where cursor is ?", (to, cursor))
        if moved.rowcount == 0:
            raise RuntimeError(f"Another process changed the copy in {path}: run only one")
        return to

    try:
        for page in client.changes(cursor):
            # The changes and the cursor after them, in one transaction: a copy that is killed resumes here.
            with database:
                cursor = move(page["cursor"])
                for item in page["body"]:
                    resource = item["resource"]
                    if "record" in item:
                        database.execute(upsert, (resource, item["record"]["id"], json.dumps(item["record"])))
                    elif "removed" in item:
                        database.execute("delete from records where (resource, id) = (?, ?)", (resource, item["removed"]))
                    else:
                        database.execute("update records set stale = 1 where resource = ?", (resource,))
                if not page["has_more"]:
                    database.execute("delete from records where stale = 1")
            applied += len(page["body"])
        return applied
    except PracticeDataError as error:
        if error.status != 410 or restarts == 0:
            raise
        # The order of changes restarted: read everything again, and delete what does not come.
        with database:
            move(None)
            database.execute("update records set stale = 1")
    finally:
        database.close()
    time.sleep(1 + random.random())
    return copy(client, path, restarts - 1)


def sign(secret, id, body, timestamp=None):
    """The headers that sign a delivery, by Standard Webhooks."""
    timestamp = str(int(time.time()) if timestamp is None else timestamp)
    key = base64.b64decode(secret[6:] if secret.startswith("whsec_") else secret)
    digest = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, "sha256")
    signature = "v1," + base64.b64encode(digest).decode()
    return {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature}


def send(url, organization, deletions, secret=None, idempotency_key=None, retries=4):
    """Sends deletions, signed if there is a secret. To survive a crash of yours, keep the key with the deletions."""
    key = _printable("Idempotency-Key", idempotency_key or str(uuid.uuid4()))
    organization = _printable("organization", organization)
    def headers(body):
        signed = sign(secret, key, body) if secret else {}
        return {"X-Organization-Id": organization, "Idempotency-Key": key, **signed}

    return _post(_origin(url) + "/api/v1/invoice-deletions", deletions, headers, retries=retries)


def variable(name):
    return os.environ.get(name) or sys.exit(f"{name} is not set")


def main(command, argument, *filters):
    url = variable("PRACTICE_DATA_URL")
    if command == "send":
        organization, secret = variable("PRACTICE_DATA_ORGANIZATION"), os.environ.get("PRACTICE_DATA_SECRET")
        return print(json.dumps(send(url, organization, json.loads(argument), secret)))
    client = PracticeData(url, variable("PRACTICE_DATA_API_KEY"))
    if command == "copy":
        return print(f"{copy(client, argument)} changes")
    for record in client.search(argument, **json.loads(filters[0] if filters else "{}")):
        print(json.dumps(record))


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("read", "copy", "send"):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has enough. What is left of the output goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (PracticeDataError, RuntimeError, ValueError, sqlite3.Error) as error:
        sys.exit(f"{error}")
