/**
 * The login of `gatehouse up --login`: puts an authorization server in front of the virtual server. Users sign in at
 * the built-in identity provider, or at the issuer in `--login`.
 */
import { randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import { readSecretFile } from '../../../config/index.ts'
import type { LocalObject } from '../../../toolkit/manifests/objects.ts'
import type { LoginSettings } from '../state.ts'
import { policiesFor } from './allowed-accounts.ts'
import { enrolmentUrl, startLoginServer } from './login-server.ts'
import { Users } from './users.ts'

export interface RunningLogin {
  /** Address that MCP clients connect to. */
  readonly address: string
  /** Identity provider where users sign in. Undefined for the built-in identity provider. */
  readonly issuer: string | undefined
  /** Origin of the login pages on the loopback interface. Undefined with another issuer. */
  readonly loginPages: string | undefined
  /** The users of the built-in identity provider. Undefined with another issuer. */
  readonly accounts: Accounts | undefined
  /** Adds the login to the manifests of a session. */
  apply(documents: readonly LocalObject[]): LocalObject[]
  close(): Promise<void>
}

export interface Accounts {
  readonly users: Users
  /**
   * Address of the page where the owner sets up a passkey or a password. Undefined when the link is no longer valid.
   */
  ownerLink(): string | undefined
  /** Returns the address of a one-time enrolment page for a new or existing user. Throws INVALID_CONFIG. */
  invite(name: string): string
}

export interface UpLoginParts {
  readonly port: number
  readonly usersFile: string
}

const apiVersion = 'gatehouse.dev/v1beta1'
const secretName = 'gatehouse-up-login'
const secretKey = 'client-secret'
const oidcName = 'gatehouse-up-login'

/** Returns the address that MCP clients connect to. */
export function addressOf({ publicUrl }: LoginSettings, port: number): string {
  return `${publicUrl ?? `http://127.0.0.1:${port}`}/mcp`
}

export async function startLogin(
  settings: LoginSettings,
  { port, usersFile }: UpLoginParts,
): Promise<RunningLogin> {
  const address = addressOf(settings, port)
  const redirectUri = `${address}/oauth/callback`
  const { issuer } = settings
  if (issuer !== undefined) {
    return {
      address,
      issuer,
      loginPages: undefined,
      accounts: undefined,
      apply: (documents) => withLogin(documents, address, otherIssuer(settings, issuer)),
      close: async () => {},
    }
  }
  // Browsers offer passkeys for localhost, but not for an IP address.
  const origin = settings.publicUrl ?? `http://localhost:${port}`
  const users = new Users(usersFile)
  const clientSecret = randomBytes(32).toString('base64url')
  const clientId = 'gatehouse-up'
  const server = await startLoginServer({ origin, address, clientId, clientSecret, redirectUri, users })
  const accounts = makeAccounts(users, origin)
  return {
    address,
    issuer,
    loginPages: server.url,
    accounts,
    apply: (documents) =>
      withLogin(documents, address, {
        secret: clientSecret,
        provider: {
          name: 'gatehouse',
          type: 'oauth2',
          oauth2Config: {
            authorizationEndpoint: `${origin}/login/auth`,
            tokenEndpoint: `${server.url}/login/token`,
            clientId,
            clientSecretRef: { name: secretName, key: secretKey },
            scopes: ['openid', 'profile'],
            userInfo: { endpointUrl: `${server.url}/login/me` },
          },
        },
      }),
    close: () => server.close(),
  }
}

function makeAccounts(users: Users, origin: string): Accounts {
  const owner = ownerName()
  const user = users.named(owner)
  const { hostname } = new URL(origin)
  const isEnrolled = user?.password !== undefined || user?.passkeys.some(({ host }) => host === hostname)
  const key = isEnrolled ? undefined : users.invite(owner)
  return {
    users,
    // The link may have expired, or a later link may have replaced it.
    ownerLink: () => (key !== undefined && users.invited(key) ? enrolmentUrl(origin, key) : undefined),
    invite: (name) => enrolmentUrl(origin, users.invite(name)),
  }
}

/** Returns the name of the operating system user, without characters that user names cannot have. */
function ownerName(): string {
  const name = userInfo()
    .username.toLowerCase()
    .replaceAll(/[^a-z0-9._@+-]/g, '-')
  return /^[a-z0-9]/.test(name) ? name.slice(0, 64) : 'owner'
}

/** The provider where users sign in, and the policies that decide which users may use the servers. */
interface Upstream {
  readonly provider: Readonly<Record<string, unknown>>
  readonly secret: string | undefined
  readonly policies?: readonly string[]
}

function otherIssuer(settings: LoginSettings, issuer: string): Upstream {
  const { clientId, clientSecret, clientSecretFile, allow } = settings
  const secret = clientSecretFile === undefined ? clientSecret : readSecretFile(clientSecretFile).reveal()
  return {
    secret,
    provider: {
      name: 'login',
      type: 'oidc',
      oidcConfig: {
        issuerUrl: issuer,
        clientId,
        ...(secret !== undefined && { clientSecretRef: { name: secretName, key: secretKey } }),
        scopes: ['openid', 'profile', 'email'],
      },
    },
    policies: policiesFor(allow),
  }
}

function withLogin(documents: readonly LocalObject[], address: string, upstream: Upstream): LocalObject[] {
  const issuer = new URL(address).origin
  const { provider, secret, policies } = upstream
  const scopes = ['openid', 'profile', 'offline_access', ...(policies ? ['email'] : [])]
  const login = {
    incomingAuth: {
      type: 'oidc',
      oidcConfigRef: { name: oidcName, audience: address, resourceUrl: address, scopes },
      ...(policies && { authzConfig: { type: 'inline', inline: { policies } } }),
    },
    authServerConfig: { issuer, upstreamProviders: [provider], baselineClientScopes: scopes },
  }
  const more = [
    {
      apiVersion,
      kind: 'MCPOIDCConfig',
      metadata: { name: oidcName },
      spec: { type: 'inline', inline: { issuer, insecureAllowHTTP: issuer.startsWith('http:') } },
    },
    ...(secret === undefined
      ? []
      : [
          {
            apiVersion: 'v1',
            kind: 'Secret',
            metadata: { name: secretName },
            stringData: { [secretKey]: secret },
          },
        ]),
  ] as unknown as LocalObject[]
  const changed = documents.map((document) =>
    document.kind === 'VirtualMCPServer' ? { ...document, spec: { ...document.spec, ...login } } : document,
  )
  return [...more, ...changed]
}
