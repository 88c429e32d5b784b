/**
 * `gatehouse token` prints an access token for an MCP server. A client requests the token on its own behalf, using a
 * secret or private key (client_credentials), or a token from the platform (jwt-bearer).
 *
 * Standard output contains only the token, or one JSON object. Everything else goes to standard error. Exit codes: 0
 * the token was printed, 1 a server is unreachable or its metadata is unusable, 2 invalid usage or configuration, 3 the
 * authorization server rejected the request.
 */
import { type Command, Option } from 'commander'
import { assertionAlgs, providerIds } from '../../oauth/index.ts'
import { collect } from '../../toolkit/terminal/options.ts'
import type { TokenFlags } from './token.ts'

export function addTokenCommand(program: Command): void {
  program
    .command('token')
    .summary('get an access token for an MCP server, without a browser')
    .description(
      'Gets an access token with a client’s own secret or private key (client_credentials), or with a token from the\n' +
        'platform (jwt-bearer), and prints it. Finds the authorization server from the MCP server’s challenge and\n' +
        'metadata, like "gatehouse proxy".',
    )
    .option('--server <url>', 'URL of the MCP server; required unless --issuer or --token-url is set')
    .option('--issuer <url>', 'issuer of the authorization server, instead of discovering it from the server')
    .option('--token-url <url>', 'token endpoint, for an authorization server without metadata')
    .option(
      '--client-id <id>',
      'client id registered with the authorization server (required without --assertion-file or --github)',
    )
    .option(
      '--client-secret-file <path>',
      'file with the client secret, or - for standard input (default: the variable GATEHOUSE_CLIENT_SECRET)',
    )
    .option(
      '--private-key-file <path>',
      'file with a private key (PEM or JWK), instead of a secret, or - for standard input',
    )
    .addOption(
      new Option(
        '--signing-alg <alg>',
        'algorithm for the private key (default: from the key, RS256 for RSA)',
      ).choices(assertionAlgs),
    )
    .option(
      '--assertion-file <path>',
      'file with a JWT from the platform, such as a Kubernetes service account token, with the issuer as its audience, or - for standard input',
    )
    .option('--github', 'use the OIDC token of this GitHub Actions job, with the issuer as audience')
    .option(
      '--scope <scope>',
      'scope to request; repeatable (default: the scopes that the server requires)',
      collect,
    )
    .option(
      '--resource <uri>',
      'resource indicator, RFC 8707 (default: from the server’s metadata, otherwise its URL)',
    )
    .addOption(
      new Option('--provider <id>', 'identity provider with a nonstandard token endpoint').choices(
        providerIds,
      ),
    )
    .option('--ca-file <path>', 'file with PEM certificates to trust in addition to the system’s')
    .option('--json', 'print a JSON object: access_token, token_type, expires_in, scope, issuer', false)
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse token --server https://mcp.example.com/mcp --client-id job --client-secret-file secret.txt\n' +
        '  gatehouse token --server https://mcp.example.com/mcp --client-id job --private-key-file key.pem --json\n' +
        '  gatehouse token --issuer https://id.example.com --client-id job --private-key-file key.pem \\\n' +
        '    --resource https://mcp.example.com/mcp --scope tools\n' +
        '  gatehouse token --server https://mcp.example.com/mcp --assertion-file /var/run/secrets/gatehouse/token\n' +
        '  gatehouse token --server https://mcp.example.com/mcp --github\n' +
        '\nExit codes: 0 the token was printed, 1 a server is unreachable or its metadata is unusable,\n' +
        '2 invalid usage or configuration, 3 the authorization server rejected the request.',
    )
    .action(async (flags: TokenFlags) => {
      const { printToken } = await import('./token.ts')
      process.exitCode = await printToken(flags)
    })
}
