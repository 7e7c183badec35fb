"""Groups with assignments by their coordinator: consumer (KIP-848), streams (KIP-1071) and share (KIP-932) groups."""
