/** Codes for the well-known documents. */
export const metadataCodes = {
  'resource-document.missing': {
    expected: 'a protected-resource document (RFC 9728)',
    fix: 'Serve /.well-known/oauth-protected-resource followed by the path of the endpoint, as JSON, without a login.',
  },
  'resource-document.legacy': {
    expected: 'a protected-resource document (RFC 9728)',
    fix: 'Only the metadata of an authorization server at the same host was found (MCP 2025-03-26). Current clients also require the protected-resource document.',
  },
  'resource-document.login': {
    expected: 'the document is public',
    fix: 'Exempt /.well-known/ from the login of the server and of the proxy in front.',
  },
  'resource-document.html': {
    expected: 'JSON of type application/json',
    fix: 'A catch-all page responds: route /.well-known/oauth-* to the MCP server, unrewritten.',
  },
  'resource-document.malformed': {
    expected: 'a JSON object',
    fix: 'Correct the document: a JSON object with resource and authorization_servers.',
  },
  'resource-document.error': {
    expected: 'status 200',
    fix: 'Check the log of the server for this path; it must not require a backend or a login.',
  },
  'resource-document.challenge-url': {
    expected: 'the document is at the URL in the challenge',
    fix: 'Correct resource_metadata in the challenge: clients try that URL first.',
  },
  'resource-document.root-only': {
    expected: 'the document at the path of the endpoint',
    fix: 'Also serve it at the path of the endpoint: with several servers on a host, the root URL can describe only one.',
  },
  'resource-document.no-servers': {
    expected: 'authorization_servers with at least one issuer',
    fix: 'Add the issuer of the authorization server to authorization_servers.',
  },
  'resource-document.server-url': {
    expected: 'authorization_servers contains absolute https URLs',
    fix: 'Write the issuer exactly as in its metadata, with https://.',
  },
  'resource.missing': {
    expected: 'resource is the URL of the server',
    fix: 'Add resource with the URL that clients use.',
  },
  'resource.scheme': {
    expected: 'resource has the scheme that clients use',
    fix: 'TLS ends in front of the server: set its public URL (resourceUrl in Gatehouse), or let it trust X-Forwarded-Proto.',
  },
  'resource.host': {
    expected: 'resource uses the host that clients connect to',
    fix: 'Set the public URL (resourceUrl in Gatehouse); the server uses its internal host name.',
  },
  'resource.path': {
    expected: 'resource covers the path that clients use',
    fix: 'Set resource to the URL of the endpoint, including the path (resourceUrl in Gatehouse).',
  },
  'resource.parent': {
    expected: 'resource equals the URL that clients use',
    fix: 'Some clients require both to be equal: set resource to the whole URL of the endpoint.',
  },
  'issuer-host.dns': {
    expected: 'the host of the issuer has an address',
    fix: 'Correct authorization_servers, or publish the name of the authorization server in the network of the clients.',
  },
  'issuer-host.connect': {
    expected: 'the authorization server accepts connections',
    fix: 'Start the authorization server, or open its port to the network of clients and browsers.',
  },
  'issuer-host.tls': {
    expected: 'a certificate that verifies',
    fix: 'Renew or complete the certificate of the authorization server; for a private authority: --ca-file, caBundleRef.',
  },
  'issuer-document.missing': {
    expected: 'metadata of the authorization server (RFC 8414 or OpenID Connect Discovery)',
    fix: 'Serve /.well-known/oauth-authorization-server followed by the path of the issuer, or openid-configuration.',
  },
  'issuer-document.html': {
    expected: 'JSON of type application/json',
    fix: 'A web page responds at the well-known paths: route them to the authorization server.',
  },
  'issuer-document.malformed': {
    expected: 'a JSON object with issuer',
    fix: 'Correct the metadata of the authorization server.',
  },
  'issuer-document.login': {
    expected: 'the metadata is public',
    fix: 'Exempt /.well-known/ from the login in front of the authorization server.',
  },
  'issuer-document.error': {
    expected: 'status 200',
    fix: 'The authorization server has an internal error: check its log.',
  },
  'issuer-document.root': {
    expected: 'metadata at the path of the issuer',
    fix: 'Only the root of the host has metadata, but of another issuer. Correct the path in authorization_servers.',
  },
  'issuer.mismatch': {
    expected: 'issuer in the metadata equals the entry of authorization_servers',
    fix: 'Copy the issuer to authorization_servers, byte for byte, or correct the public URL of the authorization server.',
  },
  'issuer.slash': {
    expected: 'the same trailing slash in both documents',
    fix: 'Write both with or both without the trailing slash: strict clients compare byte for byte.',
  },
  'issuer-clock.skew': {
    expected: 'clocks that differ by less than 5 seconds',
    fix: 'Synchronise the clock of the authorization server (NTP): new tokens are rejected as not yet valid.',
  },
  'endpoints.missing': {
    expected: 'authorization_endpoint and token_endpoint',
    fix: 'The metadata lacks an endpoint that the login requires: enable the authorization code flow.',
  },
  'endpoints.insecure': {
    expected: 'https endpoints',
    fix: 'The authorization server uses http in its metadata: set its public URL, or let it trust X-Forwarded-Proto.',
  },
} as const
