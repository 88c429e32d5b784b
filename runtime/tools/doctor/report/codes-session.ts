/** Codes for the MCP session and its streams. */
export const sessionCodes = {
  'initialize.token': {
    expected: 'the token is accepted',
    fix: 'The server rejected the token: compare the expected issuer, audience and scopes with those above.',
  },
  'initialize.scope': {
    expected: 'the token has the required scopes',
    fix: 'Log in again with the scopes in the challenge.',
  },
  'initialize.error': {
    expected: 'a result for initialize, or for server/discover',
    fix: 'Check the MCP server’s log for this request.',
  },
  'initialize.version': {
    expected: 'a protocol revision that clients support',
    fix: 'Upgrade the MCP server: it supports no revision from 2024-11-05 to 2026-07-28.',
  },
  'initialize.session-id': {
    expected: 'a session id that contains only visible ASCII characters',
    fix: 'Correct the Mcp-Session-Id that the server generates (MCP 2025-11-25, session management).',
  },
  'tools.error': {
    expected: 'a result for tools/list',
    fix: 'Check the MCP server’s log for this request; the caller may lack permissions.',
  },
  'tools.lost': {
    expected: 'the session exists on the next request',
    fix: 'Requests in one session reach different replicas: share sessions (sessionStorage with Redis), or route by the Mcp-Session-Id header.',
  },
  'tools.empty': {
    expected: 'at least one tool',
    fix: 'The server lists no tools: check its backends and filters, and this caller’s permissions.',
  },
  'tools.too-large': {
    expected: 'a page of tools under 256 KiB',
    fix: 'Split the list into pages, or offer fewer tools: models cannot handle that many tools.',
  },
  'session.unknown-id': {
    expected: '404 for a session that does not exist',
    fix: 'Clients open a new session only on 404; with any other status, they do not recover from a server restart. Upgrade the server.',
  },
  'session.accepted': {
    expected: '404 for a session that does not exist',
    fix: 'The server accepts any session id: upgrade the server, or put Gatehouse in front of it to bind sessions to their callers.',
  },
  'session.affinity': {
    expected: 'the session exists on every request',
    fix: 'Requests in one session reach different replicas: share sessions (sessionStorage with Redis), or route by the Mcp-Session-Id header.',
  },
  'stream.buffered': {
    expected: 'the headers of an event stream arrive immediately',
    fix: 'A proxy in front of the server buffers the response: for nginx, set proxy_buffering off (or send X-Accel-Buffering: no from the server); for other proxies, disable caching and compression of text/event-stream.',
  },
  'stream.compressed': {
    expected: 'an event stream without compression',
    fix: 'Exempt text/event-stream from compression: compression delays events.',
  },
  'stream.length': {
    expected: 'an event stream without Content-Length',
    fix: 'A proxy in front of the server reads the whole stream before forwarding it: disable its response buffering for this path.',
  },
  'stream.cut': {
    expected: 'a stream that stays open',
    fix: 'Raise the idle timeout of the proxy in front of the server (nginx proxy_read_timeout, load balancer idle timeout), and have the server send a comment every 20 seconds.',
  },
  'stream.type': {
    expected: 'text/event-stream, or status 405',
    fix: 'GET on the endpoint must return an event stream or 405: route GET and POST to the MCP server.',
  },
} as const
