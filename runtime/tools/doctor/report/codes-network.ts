/** Codes for the network, the MCP endpoint and its challenge. */
export const networkCodes = {
  'dns.not-found': {
    expected: 'the name resolves to an address',
    fix: 'Check the spelling of the host, and the DNS zone. Names in a cluster or a VPN only resolve inside it.',
  },
  'dns.underscore': {
    expected: 'the name resolves to an address',
    fix: 'Host names cannot contain underscores: use a hyphen in the name of the Service or record.',
  },
  'dns.resolver': {
    expected: 'the resolver responds',
    fix: 'The resolver of this machine did not respond: check the network, VPN and resolver, then run this again.',
  },
  'address.private': {
    expected: 'a public address, when hosted clients are to reach the server',
    fix: 'Hosted clients call from their vendor’s network and cannot reach it. A gateway needs allowPrivateEndpoint: true in its MCPServerEntry.',
  },
  'address.refused': {
    expected: 'a public address',
    fix: 'A public server refers to a host with an internal address. Correct the URL in its metadata, or publish the host.',
  },
  'connect.refused': {
    expected: 'a connection to the port',
    fix: 'No server listens on that address and port: start the server, correct the port, or bind it to more than 127.0.0.1.',
  },
  'connect.timeout': {
    expected: 'a connection within the time limit',
    fix: 'A firewall, security group or NetworkPolicy drops the packets: allow the port from here.',
  },
  'connect.unreachable': {
    expected: 'a route to the address',
    fix: 'There is no route from here: check VPN, subnet and whether IPv6 works on this machine.',
  },
  'connect.some': {
    expected: 'every address of the name accepts connections',
    fix: 'Remove the DNS records of addresses that do not respond (often a stale AAAA record).',
  },
  'tls.none': {
    expected: 'https',
    fix: 'Tokens travel in plaintext: use TLS in front of it, and publish the https address.',
  },
  'tls.not-tls': {
    expected: 'TLS on the port',
    fix: 'The port uses plain HTTP or another protocol: use http:// for a local server, or the port that terminates TLS.',
  },
  'tls.handshake': {
    expected: 'a TLS 1.2 or 1.3 handshake',
    fix: 'The server rejects the handshake: check its TLS versions, its certificate for this name (SNI), and whether it requires a client certificate.',
  },
  'tls.expired': {
    expected: 'a certificate that is valid today',
    fix: 'Renew the certificate, and reload the server or proxy that presents it.',
  },
  'tls.not-yet-valid': {
    expected: 'a certificate that is valid today',
    fix: 'The certificate is not valid yet: correct the clock of this machine, or of the one that issued it.',
  },
  'tls.name': {
    expected: 'a certificate for this host name',
    fix: 'Issue a certificate whose subject alternative names contain the host, or use a host that it contains.',
  },
  'tls.self-signed': {
    expected: 'a certificate of a known authority',
    fix: 'Trust its authority: caBundleRef in manifests, --ca-file here, NODE_EXTRA_CA_CERTS for clients on Node; or use a public certificate.',
  },
  'tls.chain': {
    expected: 'the whole chain up to a known authority',
    fix: 'The server does not send its intermediate certificate: configure the full chain. For a private authority: caBundleRef, --ca-file or NODE_EXTRA_CA_CERTS.',
  },
  'tls.invalid': {
    expected: 'a certificate that verifies',
    fix: 'Replace the certificate; openssl s_client shows the whole chain.',
  },
  'tls.expires-soon': {
    expected: 'a certificate that is valid for more than 14 days',
    fix: 'Renew the certificate, and find out why it was not renewed automatically.',
  },
  'endpoint.unreachable': {
    expected: 'an HTTP response to POST initialize',
    fix: 'The connection works, but no HTTP response arrives: check the logs of the server and of the proxy in front of it.',
  },
  'endpoint.redirect': {
    expected: 'the MCP endpoint itself, without a redirect',
    fix: 'Use the final URL: on a redirect, clients drop the Authorization header or change POST to GET.',
  },
  'endpoint.not-found': {
    expected: 'an MCP endpoint at this path',
    fix: 'Correct the path (often /mcp), or the route of the reverse proxy, which must not rewrite the path.',
  },
  'endpoint.host': {
    expected: 'a server that accepts its own host name',
    fix: 'Allow this host name in the settings of the server (allowed hosts, DNS rebinding protection), or let the proxy in front send a Host that the server accepts.',
  },
  'endpoint.html': {
    expected: 'JSON or an event stream',
    fix: 'A web page responds instead of the MCP server: route the path to the server, past login pages and single-page applications.',
  },
  'endpoint.method': {
    expected: 'POST is accepted',
    fix: 'Only GET is allowed here: allow POST, GET, DELETE and OPTIONS in the proxy or web application firewall.',
  },
  'endpoint.http-sse': {
    expected: 'streamable HTTP',
    fix: 'The server speaks the HTTP+SSE (deprecated) transport: set transport: sse for it, or upgrade the server.',
  },
  'endpoint.forbidden': {
    expected: 'a response to a client without a browser',
    fix: 'A firewall, an IP allow list or a check of Host or Origin rejects the request: allow this client and this host name.',
  },
  'endpoint.upstream': {
    expected: 'the server behind the reverse proxy responds',
    fix: 'The proxy in front works, but cannot reach the MCP server: check its upstream address, port and health check.',
  },
  'endpoint.server-error': {
    expected: 'a response without a server error',
    fix: 'Check the log of the MCP server for this request.',
  },
  'endpoint.rate-limit': {
    expected: 'the request is within the limits',
    fix: 'Wait for the time in Retry-After, then run this again; raise the limit for this address if it persists.',
  },
  'endpoint.not-mcp': {
    expected: 'a JSON-RPC response to initialize',
    fix: 'The URL is not an MCP endpoint, or it needs settings that a client does not send: compare it with the server’s documentation.',
  },
  'endpoint.too-large': {
    expected: 'a response to initialize of less than 256 KiB',
    fix: 'The URL responds with something other than a handshake: correct the path.',
  },
  'clock.skew': {
    expected: 'clocks that differ by less than 5 seconds',
    fix: 'Synchronise the clocks (NTP) of this machine and of the server: tokens are rejected as expired or not yet valid.',
  },
  'cors.refused': {
    expected: 'a preflight that allows the origin',
    fix: 'Allow the origin of the client in the server, or in the proxy in front, and let OPTIONS pass without a login.',
  },
  'cors.headers': {
    expected: 'Access-Control-Allow-Headers with the headers that clients send',
    fix: 'Allow authorization, content-type, mcp-protocol-version and mcp-session-id; * does not include authorization.',
  },
  'cors.exposed': {
    expected: 'Access-Control-Expose-Headers: WWW-Authenticate, Mcp-Session-Id',
    fix: 'Expose both: scripts cannot see the challenge or the session otherwise.',
  },
  'challenge.open': {
    expected: '401 for a client without a token',
    fix: 'Anyone who can reach the address can call its tools. Use gatehouse proxy or a VirtualMCPServer with incomingAuth in front of it.',
  },
  'challenge.late': {
    expected: '401 on the first request',
    fix: 'The server requires a login only on tools/list; some clients never start one. Also protect initialize.',
  },
  'challenge.missing': {
    expected: '401 with WWW-Authenticate: Bearer resource_metadata="…"',
    fix: 'Send the header with every 401, and let the proxy in front forward it unchanged.',
  },
  'challenge.renamed': {
    expected: 'a header named WWW-Authenticate',
    fix: 'AWS API Gateway renames the header: use a Lambda function URL, an Application Load Balancer or CloudFront in front, or set it with a response mapping.',
  },
  'challenge.scheme': {
    expected: 'a challenge of the scheme Bearer',
    fix: 'Another login (Basic, Negotiate, a portal) is in front of the MCP server: exempt its path from it.',
  },
  'challenge.status': {
    expected: 'status 401 for a client without a token',
    fix: 'Respond with 401: clients only start a login on 401.',
  },
  'challenge.no-metadata': {
    expected: 'resource_metadata in the challenge',
    fix: 'Add the URL of the protected-resource document to the challenge: some clients look nowhere else.',
  },
  'challenge.metadata-url': {
    expected: 'resource_metadata is an absolute https URL',
    fix: 'Correct resource_metadata; behind a proxy that ends TLS, set the server’s public URL.',
  },
} as const
