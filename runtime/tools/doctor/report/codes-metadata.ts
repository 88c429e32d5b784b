/** Codes for the well-known documents. */
export const metadataCodes = {
  'resource-document.missing': {
    expected: 'a protected-resource document (RFC 9728)',
    fix: 'Serve /.well-known/oauth-protected-resource followed by the endpoint’s path, as JSON, without a login.',
  },
  'resource-document.legacy': {
    expected: 'a protected-resource document (RFC 9728)',
    fix: 'Only authorization server metadata on the same host was found (MCP 2025-03-26). Current clients also require the protected-resource document.',
  },
  'resource-document.login': {
    expected: 'the document is public',
    fix: 'Exempt /.well-known/ from the login of the server and of the proxy in front of it.',
  },
  'resource-document.html': {
    expected: 'JSON of type application/json',
    fix: 'A catch-all page is served: route /.well-known/oauth-* to the MCP server without rewriting the path.',
  },
  'resource-document.malformed': {
    expected: 'a JSON object',
    fix: 'Correct the document: a JSON object with resource and authorization_servers.',
  },
  'resource-document.error': {
    expected: 'status 200',
    fix: 'Check the server’s log for this path; the document must not require a backend or a login.',
  },
  'resource-document.challenge-url': {
    expected: 'the document is at the URL in the challenge',
    fix: 'Correct resource_metadata in the challenge: clients try that URL first.',
  },
  'resource-document.root-only': {
    expected: 'the document at the endpoint’s path',
    fix: 'Also serve the document at the endpoint’s path: if a host has several servers, the root URL can describe only one of them.',
  },
  'resource-document.no-servers': {
    expected: 'authorization_servers with at least one issuer',
    fix: 'Add the authorization server’s issuer to authorization_servers.',
  },
  'resource-document.server-url': {
    expected: 'authorization_servers contains absolute https URLs',
    fix: 'Write the issuer exactly as in its metadata, with https://.',
  },
  'resource.missing': {
    expected: 'resource is the server’s URL',
    fix: 'Add resource with the URL that clients use.',
  },
  'resource.scheme': {
    expected: 'resource has the scheme that clients use',
    fix: 'TLS is terminated in front of the server: set its public URL (resourceUrl in Gatehouse), or configure it to trust X-Forwarded-Proto.',
  },
  'resource.host': {
    expected: 'resource uses the host that clients connect to',
    fix: 'The server uses its internal host name: set its public URL (resourceUrl in Gatehouse).',
  },
  'resource.path': {
    expected: 'resource covers the path that clients use',
    fix: 'Set resource to the endpoint’s URL, including the path (resourceUrl in Gatehouse).',
  },
  'resource.parent': {
    expected: 'resource equals the URL that clients use',
    fix: 'Some clients require both to be equal: set resource to the endpoint’s full URL.',
  },
  'issuer-host.dns': {
    expected: 'the issuer’s host name resolves to an address',
    fix: 'Correct authorization_servers, or make the authorization server’s name resolvable in the clients’ network.',
  },
  'issuer-host.connect': {
    expected: 'the authorization server accepts connections',
    fix: 'Start the authorization server, or make its port reachable from clients and browsers.',
  },
  'issuer-host.tls': {
    expected: 'a certificate that passes verification',
    fix: 'Renew the authorization server’s certificate, or complete its chain; for a private authority, use --ca-file or caBundleRef.',
  },
  'issuer-document.missing': {
    expected: 'authorization server metadata (RFC 8414 or OpenID Connect Discovery)',
    fix: 'Serve /.well-known/oauth-authorization-server followed by the issuer’s path, or openid-configuration.',
  },
  'issuer-document.html': {
    expected: 'JSON of type application/json',
    fix: 'A web page is served at the well-known paths: route them to the authorization server.',
  },
  'issuer-document.malformed': {
    expected: 'a JSON object with issuer',
    fix: 'Correct the authorization server’s metadata.',
  },
  'issuer-document.login': {
    expected: 'the metadata is public',
    fix: 'Exempt /.well-known/ from the login in front of the authorization server.',
  },
  'issuer-document.error': {
    expected: 'status 200',
    fix: 'The authorization server reported an internal error: check its log.',
  },
  'issuer-document.root': {
    expected: 'metadata at the issuer’s path',
    fix: 'The only metadata is at the root of the host, and it belongs to another issuer. Correct the path in authorization_servers.',
  },
  'issuer.mismatch': {
    expected: 'issuer in the metadata equals the entry in authorization_servers',
    fix: 'Copy the issuer to authorization_servers, byte for byte, or correct the authorization server’s public URL.',
  },
  'issuer.slash': {
    expected: 'the same trailing slash in both documents',
    fix: 'Use the trailing slash in both documents or in neither: strict clients compare byte for byte.',
  },
  'issuer-clock.skew': {
    expected: 'clocks that differ by less than 5 seconds',
    fix: 'Synchronize the authorization server’s clock (NTP): otherwise, new tokens are rejected as not yet valid.',
  },
  'endpoints.missing': {
    expected: 'authorization_endpoint and token_endpoint',
    fix: 'The metadata lacks an endpoint that the login requires: enable the authorization code flow.',
  },
  'endpoints.insecure': {
    expected: 'https endpoints',
    fix: 'The authorization server uses http in its metadata: set its public URL, or configure it to trust X-Forwarded-Proto.',
  },
} as const
