/**
 * Runs a test identity provider on this machine: a real OpenID provider (the package oidc-provider) with a form that
 * accepts every name and password. `make run`, `make build` and `make package` install the package.
 *
 *   node manifests/local-login/identity-provider.mjs CERTIFICATE KEY
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { Provider } from 'oidc-provider'

const [certificate, key] = process.argv.slice(2)
if (certificate === undefined || key === undefined) {
  process.stderr.write('usage: node manifests/local-login/identity-provider.mjs CERTIFICATE KEY\n')
  process.exit(2)
}

const port = 9400
const issuer = `https://127.0.0.1:${port}`
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'gatehouse',
      client_secret: 'a-secret-for-this-machine-only',
      redirect_uris: ['http://127.0.0.1:4483/oauth/callback'],
    },
  ],
  claims: { openid: ['sub'], profile: ['name'], email: ['email'] },
  findAccount: (_context, sub) => ({
    accountId: sub,
    claims: () => ({ sub, name: sub, email: `${sub}@example.com` }),
  }),
})
const respond = provider.callback()
const server = createServer(
  { cert: readFileSync(certificate), key: readFileSync(key) },
  (req, res) => void respond(req, res),
)
server.listen(port, '127.0.0.1', () => process.stdout.write(`Identity provider: ${issuer}\n`))
