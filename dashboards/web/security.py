"""Headers on every response: nothing is loaded from, sent to or framed by another host, no text becomes a script."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Flask, Response


def harden(server: Flask, script_hashes: Sequence[str]) -> None:
    """`script_hashes` are the inline scripts Dash itself writes into its page.

    Styles may be inline: Plotly and AG Grid set them (plotly.js#2355). No 'unsafe-eval': no trace we draw needs it.
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
