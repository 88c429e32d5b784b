/** Codes of the MCP session, its streams, and of the other targets. */
export const sessionCodes = {
  'initialize.token': {
    expected: 'the token is accepted',
    fix: 'The server refuses the token: compare issuer, audience and scopes that it expects with those above.',
  },
  'initialize.scope': {
    expected: 'the token has the scopes that the server wants',
    fix: 'Sign in again with the scopes that the challenge names.',
  },
  'initialize.error': {
    expected: 'a result for initialize, or for server/discover',
    fix: 'Look at the log of the MCP server for this request.',
  },
  'initialize.version': {
    expected: 'a protocol revision that clients speak',
    fix: 'Upgrade the MCP server: it speaks no revision from 2024-11-05 to 2026-07-28.',
  },
  'initialize.session-id': {
    expected: 'a session id of visible ASCII characters',
    fix: 'Correct the Mcp-Session-Id that the server makes (MCP 2025-11-25, session management).',
  },
  'tools.error': {
    expected: 'a result for tools/list',
    fix: 'Look at the log of the MCP server for this request; permissions of the caller may be missing.',
  },
  'tools.lost': {
    expected: 'the session is there on the next request',
    fix: 'Requests of one session reach different replicas: share sessions (sessionStorage with Redis), or route by the Mcp-Session-Id header.',
  },
  'tools.empty': {
    expected: 'at least one tool',
    fix: 'The server lists no tools: check its backends, filters and the permissions of this caller.',
  },
  'tools.too-large': {
    expected: 'a page of tools below 256 KiB',
    fix: 'Split the list into pages, or offer fewer tools: models cannot use that many.',
  },
  'session.unknown-id': {
    expected: '404 for a session that does not exist',
    fix: 'Clients open a new session on 404 only; with another status they stay dead after a restart of the server. Upgrade the server.',
  },
  'session.accepted': {
    expected: '404 for a session that does not exist',
    fix: 'The server takes any session id: upgrade it, or put Gatehouse in front, which binds sessions to their callers.',
  },
  'session.affinity': {
    expected: 'the session is there on every request',
    fix: 'Requests of one session reach different replicas: share sessions (sessionStorage with Redis), or route by the Mcp-Session-Id header.',
  },
  'stream.buffered': {
    expected: 'the headers of an event stream come at once',
    fix: 'A proxy in front collects the response: nginx needs proxy_buffering off (or X-Accel-Buffering: no from the server), others no response caching and no compression for text/event-stream.',
  },
  'stream.compressed': {
    expected: 'an event stream without compression',
    fix: 'Exempt text/event-stream from compression: compressors hold events back.',
  },
  'stream.length': {
    expected: 'an event stream without Content-Length',
    fix: 'A proxy in front read the whole stream before it passed it on: turn its response buffering off for this path.',
  },
  'stream.cut': {
    expected: 'a stream that stays open',
    fix: 'Raise the idle time-out of the proxy in front (nginx proxy_read_timeout, load balancer idle timeout), and let the server send a comment every 20 seconds.',
  },
  'stream.type': {
    expected: 'text/event-stream, or status 405',
    fix: 'GET on the endpoint must be an event stream or 405: route GET to the MCP server as well as POST.',
  },
} as const
