/** Codes for the network, the MCP endpoint and its challenge. */
export const networkCodes = {
  'dns.not-found': {
    expected: 'the name resolves to an address',
    fix: 'Check the spelling of the host name, and the DNS zone. Names in a cluster or a VPN resolve only inside it.',
  },
  'dns.underscore': {
    expected: 'the name resolves to an address',
    fix: 'Host names cannot contain underscores: use a hyphen in the name of the Service or record.',
  },
  'dns.resolver': {
    expected: 'the resolver responds',
    fix: 'This machine’s resolver did not respond: check the network, VPN and resolver, then run the command again.',
  },
  'address.private': {
    expected: 'a public address, if hosted clients must reach the server',
    fix: 'Hosted clients call from their vendor’s network and cannot reach this address. A gateway needs allowPrivateEndpoint: true in its MCPServerEntry.',
  },
  'address.refused': {
    expected: 'a public address',
    fix: 'A public server refers to a host with an internal address. Correct the URL in its metadata, or make the host public.',
  },
  'connect.refused': {
    expected: 'a connection to the port',
    fix: 'No server is listening on that address and port: start the server, correct the port, or bind the server to a non-loopback address.',
  },
  'connect.timeout': {
    expected: 'a connection within the time limit',
    fix: 'A firewall, security group or NetworkPolicy is dropping the packets: allow connections to the port from this machine.',
  },
  'connect.unreachable': {
    expected: 'a route to the address',
    fix: 'There is no route from this machine: check the VPN, the subnet, and whether IPv6 works here.',
  },
  'connect.some': {
    expected: 'every address that the name resolves to accepts connections',
    fix: 'Remove the DNS records for addresses that do not respond (often a stale AAAA record).',
  },
  'tls.none': {
    expected: 'https',
    fix: 'Tokens are sent in plaintext: put TLS in front of the server, and publish the https address.',
  },
  'tls.not-tls': {
    expected: 'TLS on the port',
    fix: 'The port uses plain HTTP or another protocol: use http:// for a local server, or the port that terminates TLS.',
  },
  'tls.handshake': {
    expected: 'a TLS 1.2 or 1.3 handshake',
    fix: 'The server rejected the handshake: check its TLS versions, its certificate for this name (SNI), and whether it requires a client certificate.',
  },
  'tls.expired': {
    expected: 'a certificate that is valid today',
    fix: 'Renew the certificate, and reload the server or proxy that presents it.',
  },
  'tls.not-yet-valid': {
    expected: 'a certificate that is valid today',
    fix: 'The certificate is not valid yet: correct the clock on this machine, or on the machine that issued the certificate.',
  },
  'tls.name': {
    expected: 'a certificate for this host name',
    fix: 'Issue a certificate whose subject alternative names contain the host, or use a host name that the certificate contains.',
  },
  'tls.self-signed': {
    expected: 'a certificate from a trusted authority',
    fix: 'Trust the issuing authority (caBundleRef in manifests, --ca-file here, NODE_EXTRA_CA_CERTS for clients that run on Node), or use a publicly trusted certificate.',
  },
  'tls.chain': {
    expected: 'the full chain up to a trusted authority',
    fix: 'The server does not send its intermediate certificate: configure the full chain. For a private authority, use caBundleRef, --ca-file or NODE_EXTRA_CA_CERTS.',
  },
  'tls.invalid': {
    expected: 'a certificate that passes verification',
    fix: 'Replace the certificate; run openssl s_client to see the whole chain.',
  },
  'tls.expires-soon': {
    expected: 'a certificate that does not expire within 14 days',
    fix: 'Renew the certificate, and find out why it was not renewed automatically.',
  },
  'endpoint.unreachable': {
    expected: 'an HTTP response to POST initialize',
    fix: 'The connection works, but no HTTP response arrives: check the logs of the server and the proxy in front of it.',
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
    fix: 'Allow this host name in the server’s settings (allowed hosts, DNS rebinding protection), or have the proxy in front of it send a Host header that the server accepts.',
  },
  'endpoint.html': {
    expected: 'JSON or an event stream',
    fix: 'A web page is served instead of the MCP endpoint: route the path to the server, bypassing login pages and single-page applications.',
  },
  'endpoint.method': {
    expected: 'POST is accepted',
    fix: 'Only GET is allowed here: allow POST, GET, DELETE and OPTIONS in the proxy or web application firewall.',
  },
  'endpoint.http-sse': {
    expected: 'streamable HTTP',
    fix: 'The server uses the deprecated HTTP+SSE transport: set transport: sse for it, or upgrade the server.',
  },
  'endpoint.forbidden': {
    expected: 'a response to a client that is not a browser',
    fix: 'A firewall, an IP allow list, or a Host or Origin check rejected the request: allow this client and this host name.',
  },
  'endpoint.upstream': {
    expected: 'the server behind the reverse proxy responds',
    fix: 'The reverse proxy works, but it cannot reach the MCP server: check its upstream address, port and health check.',
  },
  'endpoint.server-error': {
    expected: 'a response without a server error',
    fix: 'Check the MCP server’s log for this request.',
  },
  'endpoint.rate-limit': {
    expected: 'the request is within the limits',
    fix: 'Wait for the time in Retry-After, then run the command again; raise the limit for this address if the error persists.',
  },
  'endpoint.not-mcp': {
    expected: 'a JSON-RPC response to initialize',
    fix: 'The URL is not an MCP endpoint, or the endpoint requires settings that a client does not send: check the server’s documentation.',
  },
  'endpoint.too-large': {
    expected: 'a response to initialize that is smaller than 256 KiB',
    fix: 'The response is not an MCP handshake: correct the path.',
  },
  'clock.skew': {
    expected: 'clocks that differ by less than 5 seconds',
    fix: 'Synchronize the clocks (NTP) on this machine and the server: otherwise, tokens are rejected as expired or not yet valid.',
  },
  'cors.refused': {
    expected: 'a preflight that allows the origin',
    fix: 'Allow the client’s origin on the server, or on the proxy in front of it, and let OPTIONS requests through without a login.',
  },
  'cors.headers': {
    expected: 'Access-Control-Allow-Headers with the headers that clients send',
    fix: 'Allow authorization, content-type, mcp-protocol-version and mcp-session-id; * does not include authorization.',
  },
  'cors.exposed': {
    expected: 'Access-Control-Expose-Headers: WWW-Authenticate, Mcp-Session-Id',
    fix: 'Expose both headers: otherwise, scripts cannot see the challenge or the session.',
  },
  'challenge.open': {
    expected: '401 for a client without a token',
    fix: 'Anyone who can reach the address can call its tools. Put gatehouse proxy or a VirtualMCPServer with incomingAuth in front of it.',
  },
  'challenge.late': {
    expected: '401 on the first request',
    fix: 'The server requires a login only on tools/list, but some clients start a login only on initialize. Also protect initialize.',
  },
  'challenge.missing': {
    expected: '401 with WWW-Authenticate: Bearer resource_metadata="…"',
    fix: 'Send the header with every 401, and have the proxy in front of the server forward it unchanged.',
  },
  'challenge.renamed': {
    expected: 'a header named WWW-Authenticate',
    fix: 'AWS API Gateway renames the header: use a Lambda function URL, an Application Load Balancer or CloudFront instead, or restore the name with a response mapping.',
  },
  'challenge.scheme': {
    expected: 'a challenge with the Bearer scheme',
    fix: 'Another login (Basic, Negotiate, a portal) is in front of the MCP server: exempt the server’s path from that login.',
  },
  'challenge.status': {
    expected: 'status 401 for a client without a token',
    fix: 'Respond with 401: clients start a login only on 401.',
  },
  'challenge.no-metadata': {
    expected: 'resource_metadata in the challenge',
    fix: 'Add the URL of the protected-resource document to the challenge: some clients look nowhere else.',
  },
  'challenge.metadata-url': {
    expected: 'resource_metadata is an absolute https URL',
    fix: 'Correct resource_metadata; behind a proxy that terminates TLS, set the server’s public URL.',
  },
} as const
