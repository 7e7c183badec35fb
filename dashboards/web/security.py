"""Security headers on every response: no loading from, sending to or framing by another host, no injected script."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Flask, Response


def harden(server: Flask, script_hashes: Sequence[str]) -> None:
    """Add the headers to all responses; `script_hashes` are the hashes of Dash's own inline scripts.

    Inline styles are allowed, because Plotly and AG Grid set them (plotly.js#2355). 'unsafe-eval' is not needed by any
    trace type in use.
    """
    policy = "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' {' '.join(script_hashes)}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )

    @server.after_request
    def headers(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
        return response
