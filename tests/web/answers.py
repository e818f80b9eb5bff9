"""Changes what the server answers to the page."""

from collections.abc import Callable


def change_answers(page, path: str, change: dict | Callable[[dict], dict]) -> None:
    """Replaces fields of the answers to `/api/PATH`, by `change` or by what it returns for the body of the request."""

    def answer(route) -> None:
        response = route.fetch()
        fields = change(route.request.post_data_json) if callable(change) else change
        route.fulfill(response=response, json=response.json() | fields)

    page.route(f"**/api/{path}", answer)


def give_value(page, value: float) -> None:
    """Gives every analysis this value."""
    change_answers(page, "analysis", {"value": value})
