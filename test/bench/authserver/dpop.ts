/**
 * Measures the cost of a DPoP check for a known token in signature checks: CPU time of the whole check (proof, hash of
 * the token, replay record in memory) divided by the CPU time of one ES256 signature check with the same library (jose)
 * in the same run. One core. `node test/bench/authserver/dpop.ts`
 */
import { jwtVerify } from 'jose'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { makeDpopClient } from '../../helpers/oauth/dpop-client.ts'
import { reached } from '../aims.ts'

const calls = 2_000
const rounds = 7
const resource = 'https://mcp.example/mcp'

/** Prints the ratio. */
export async function measureDpop(): Promise<void> {
  const idp = await startTokenIssuer()
  const { issuer, audience, jwksUrl } = idp
  const dpop = { mode: 'required', requireNonce: false, proofMaxAge: '5m', replay: 'store' } as const
  const authenticator = makeAuthenticator(
    { type: 'oidc', oidc: { issuer, audience, jwksUrl, resource, dpop } },
    { dpop: { store: makeMemoryStore() } },
  )
  const client = await makeDpopClient()
  const token = await idp.token('alice', { cnf: client.cnf }, 3_600)
  const ratios: number[] = []
  for (let round = 0; round <= rounds; round++) {
    const proofs = await Promise.all(
      Array.from({ length: calls }, () => client.proof('POST', resource, token)),
    )
    const whole = await microsecondsEach(proofs, (proof) =>
      authenticator.authenticate(`DPoP ${token}`, { method: 'POST', path: '/mcp', proof }),
    )
    const { publicKey } = client
    const bare = await microsecondsEach(proofs, (proof) => jwtVerify(proof, publicKey))
    // The first round warms up.
    if (round === 0) continue
    ratios.push(whole / bare)
    console.log(
      `  ${whole.toFixed(0)} µs per request, ${bare.toFixed(0)} µs per signature: ${(whole / bare).toFixed(2)} signature checks`,
    )
  }
  const median = ratios.toSorted((a, b) => a - b)[(rounds - 1) / 2] ?? 0
  reached('dpopCheck', median)
  await authenticator.close()
  await idp.close()
}

/** Returns the CPU time of the process per call, all threads included. */
async function microsecondsEach<Item>(
  items: readonly Item[],
  perform: (item: Item) => unknown,
): Promise<number> {
  const before = process.cpuUsage()
  for (const item of items) await perform(item)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / items.length
}

if (import.meta.main) await measureDpop()
