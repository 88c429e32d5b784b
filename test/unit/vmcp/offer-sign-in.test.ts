/** Which callers get the address of a sign-in with its key: those who may start a login at the owner's backends. */
import t from 'tap'
import { GatehouseError } from '../../../schemas/index.ts'
import { anonymousCaller } from '../../../runtime/incoming/index.ts'
import { ownerCaller } from '../../../runtime/incoming/identity.ts'
import { type Caller, makeCaller } from '../../../runtime/net/index.ts'
import { offerSignIn } from '../../../runtime/vmcp/call/offer-sign-in.ts'
import type { Operation } from '../../../runtime/vmcp/model/operation.ts'

const address = 'http://127.0.0.1:4483/sign-in/mail'
const signIns = { waitingAt: () => address, withKey: (url: string) => `${url}?key=planted` }
const user = makeCaller({ issuer: 'https://id.example.com', subject: 'alice', claims: { sub: 'alice' } })

async function offeredTo(
  caller: Caller,
  requiresToken: { readonly requiresToken: boolean },
): Promise<string> {
  const operation = { method: 'tools/call', client: { caller, abilities: { elicitationUrl: true } } }
  const outcome = await offerSignIn(signIns, requiresToken)(operation as unknown as Operation, () => {
    throw new GatehouseError('BACKEND_SIGN_IN_REQUIRED', { data: { backend: 'mail' } })
  })
  return outcome.kind === 'error' ? outcome.error.toString() : outcome.kind
}

t.test('sign-in: the key of its address', async (t) => {
  const up = { requiresToken: true }
  const open = { requiresToken: false }
  t.match(await offeredTo(ownerCaller(), up), 'key=planted', 'up --login: the owner’s clients')
  t.match(await offeredTo(anonymousCaller(), up), 'key=planted', 'up: the owner’s clients')
  const others = await offeredTo(user, up)
  t.match(others, address)
  t.notMatch(others, 'planted', 'up --login: a user who signed in')
  t.match(await offeredTo(user, open), 'key=planted', 'a server with authentication')
  t.notMatch(await offeredTo(anonymousCaller(), open), 'planted', 'a server without authentication')
})
