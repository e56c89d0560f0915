"""The doors over HTTP: the JSON API under `/api/v1`, its event stream, and what operators look at.

app        puts the application together
access     who calls: the person or agent of a bearer key
bodies     what may be sent: size, type and strict JSON
problems   how every refusal is answered (RFC 9457)
"""
