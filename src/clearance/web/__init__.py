"""The doors over HTTP: the JSON API under `/api/v1`, its event stream, and what operators look at.

app        puts the application together
access     who calls: the person or agent of a bearer key
bodies     what may be sent: size, type and strict JSON
paging     how lists go on
records    what is answered, with types, and exact JSON
problems   how every refusal is answered (RFC 9457)
document   the OpenAPI document
me reviews runs audit calls health metrics   one file a resource
events     what happens, as a stream; `changes` notices every commit and wakes the streams
threads    conversations: their messages, and what they wait for
turns      what a run comes to, as an answer or as a stream
following  waiting for a run, and the frames of its stream
sse        how every stream is framed
repeats    requests that are done once, by their Idempotency-Key
"""
