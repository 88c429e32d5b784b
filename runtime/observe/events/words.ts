/**
 * Backend failure categories, with the text for readers of `/status` and the fix. They contain no addresses. The
 * backend's own explanation may follow (`withDetail`).
 */
interface Words {
  readonly text: string
  readonly fix: (backend: string) => string
}

const wordTable: Readonly<Record<string, Words>> = {
  authentication_failed: {
    text: 'Authentication failed',
    fix: (backend) => `check outgoingAuth for ${backend}: the backend rejects the credential`,
  },
  sign_in_required: {
    text: 'Sign-in required',
    fix: (backend) => `sign in to ${backend}: "gatehouse tools list" shows the address`,
  },
  timeout: {
    text: 'Health check timed out',
    fix: (backend) =>
      `check the load on ${backend}; raise operational.failureHandling.healthCheckTimeout or operational.timeouts if it is slow by design`,
  },
  backend_unavailable: {
    text: 'Backend unavailable',
    fix: (backend) => `check the log of ${backend}: it is returning internal errors`,
  },
  connection_failed: {
    text: 'Connection failed',
    fix: (backend) =>
      `check that ${backend} is running, that its url is correct, and that network policies and its certificate allow connections from this server`,
  },
  http_proxy_failed: {
    text: 'The HTTP proxy could not connect',
    fix: (backend) =>
      `check HTTPS_PROXY, HTTP_PROXY and NO_PROXY on this server: the log contains the proxy used for ${backend} and the reason`,
  },
  session_lost: {
    text: 'Sessions are lost',
    fix: (backend) =>
      `${backend} loses its sessions: run one replica, enable session affinity, or configure shared session storage`,
  },
  health_check_failed: {
    text: 'Health check failed',
    fix: (backend) => `check that ${backend} is an MCP server at this url: its responses are not valid MCP`,
  },
  host_rejected: {
    text: 'The backend rejected the host name',
    fix: (backend) =>
      `allow the host name in its url in the settings of ${backend} (allowed hosts, DNS rebinding protection)`,
  },
  wrong_path: {
    text: 'No MCP server at the URL path',
    fix: (backend) => `check the path in the url of ${backend}: most servers use /mcp, older ones /sse`,
  },
  web_page: {
    text: 'The backend returns a web page',
    fix: (backend) =>
      `correct the url of ${backend}: it points to a web page, not an MCP server; the login page of a proxy in front of the server can also cause this`,
  },
  request_rejected: {
    text: "The backend rejects this server's requests",
    fix: (backend) =>
      `correct the problem that the error from ${backend} describes, in its settings or in this server's`,
  },
  credential_unavailable: {
    text: 'No credential for the backend',
    fix: (backend) =>
      `check outgoingAuth for ${backend} and its authorization server, which did not issue a token`,
  },
  slow: {
    text: 'Health check is slow',
    fix: (backend) => `check the load on ${backend}: health checks take longer than 5 seconds`,
  },
}

const otherWords: Words = {
  text: 'Health check failed',
  fix: (backend) => `check the log of ${backend}`,
}

/** Next steps that apply to several events. */
export const checkRedis =
  'check that Redis is running and that its address, password and network path are correct'
export const checkDecisionPoint =
  'check that the decision point is running and answers POST <url>/decision with 200 and {"allow": true or false} as application/json'

export function checkWebhook(webhook: string): string {
  return `check that webhook ${webhook} is running and answers with 200, application/json, and the members version, uid and allowed`
}

/** Returns the text for a category. */
export function failureText(category: string): string {
  return (wordTable[category] ?? otherWords).text
}

/** Appends the backend's own explanation, if any. */
export function withDetail(text: string, detail: string | undefined): string {
  return detail === undefined ? text : `${text}: ${detail}`
}

/** Returns the fix for a category. */
export function failureFix(category: string, backend: string): string {
  return (wordTable[category] ?? otherWords).fix(backend)
}
