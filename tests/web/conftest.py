"""Fixtures: a server with untrained networks on small boards, and a page in headless Chromium."""

import contextlib
import functools
import shutil
import threading

import pytest

from tests.serving.untrained import save_untrained

sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
PATIENCE_MS = 60_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    """Starts Chromium: the system's, or playwright's own.

    Each module starts its own, since playwright occupies the event loop of the thread until it ends.
    """
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"Chromium is not installed: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


def is_error(message):
    """Returns whether a console message is an error of the page. A request rejected by the server is not."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")


@pytest.fixture
def page(browser):
    """Opens a page. Any script error fails the test."""
    context = browser.new_context(
        viewport={"width": 1200, "height": 850}, accept_downloads=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if is_error(message) else None)
    yield page
    page.unroute_all(behavior="ignoreErrors")  # a request may be on its way
    context.close()
    assert not errors


@pytest.fixture(scope="session")
def start():
    """Returns `start(sources, board, folder)`, which serves networks, and the run in `folder`; returns the address."""
    from alphagat.serving.app import make_app
    from alphagat.serving.hosts import listen
    from alphagat.serving.http_server import make_server
    from alphagat.serving.live_run import LiveRun
    from alphagat.serving.roster import Roster
    from alphagat.serving.service import BatchService

    servers = []

    def start(sources, board=None, folder=None):
        roster = Roster(sources, board)
        service = BatchService(roster.prepare, max_batch=4, max_wait_ms=0, max_queue=16)
        listener = listen("127.0.0.1", 0)
        app = make_app(roster, service, 0, live_run=LiveRun(folder, roster, board) if folder else None)
        server = make_server(app, service)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        servers.append((server, thread, service, listener))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for server, thread, service, listener in servers:
        server.should_exit = True
        thread.join(30)
        service.close()
        with contextlib.suppress(OSError):
            listener.close()


@pytest.fixture(scope="session")
def serve(start, tmp_path_factory):
    """Returns `serve(board)`, which serves an untrained network and returns the address."""
    folder = tmp_path_factory.mktemp("web")
    return functools.cache(lambda board: start([save_untrained(folder, board)], board))
