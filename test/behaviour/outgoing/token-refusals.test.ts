/** Every strategy with a token endpoint classifies rejections by the shared table. */
import t from 'tap'
import type { Caller } from '../../../runtime/net/index.ts'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import type { TokenRefusal } from '../../../runtime/oauth/refusals/token-refusal.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { testCaller, testRequest, testUpstream } from '../../helpers/outgoing/outgoing.ts'
import { tokenRefusals } from '../../helpers/outgoing/token-refusals.ts'

/** The error code for the caller when the rejected token is the caller's. */
const codes: Readonly<Record<TokenRefusal, string>> = {
  temporary: 'BACKEND_AUTH_UNAVAILABLE',
  client: 'BACKEND_AUTH_FAILED',
  grant: 'SUBJECT_REFUSED',
  request: 'BACKEND_AUTH_FAILED',
  unclear: 'BACKEND_AUTH_FAILED',
}

const strategies: Readonly<Record<string, (url: string) => StrategyConfig>> = {
  token_exchange: (url) => ({
    type: 'token_exchange',
    tokenExchange: { tokenUrl: `${url}/token`, audience: 'backend', clientId: 'gw', clientSecret: 'secret' },
  }),
  obo: (url) => ({
    type: 'obo',
    obo: { tokenUrl: `${url}/token`, clientId: 'gw', clientSecret: 'secret', audience: 'api://backend' },
  }),
  xaa: (url) => ({
    type: 'xaa',
    xaa: {
      idpTokenUrl: `${url}/idp`,
      idpClientId: 'at-idp',
      idpClientSecret: 'secret',
      targetTokenUrl: `${url}/token`,
      targetClientId: 'at-target',
      targetClientSecret: 'secret',
      targetAudience: 'https://target.example',
      subjectProviderName: 'corp',
    },
  }),
}

for (const [type, configOf] of Object.entries(strategies)) {
  await t.test(type, async (t) => {
    for (const { name, response, refusal } of tokenRefusals) {
      const server = await startLoopback(() => response)
      const outgoing = makeOutgoing({
        enableObo: true,
        upstream: testUpstream({ 'alice corp': { accessToken: 'at', idToken: 'id-of-alice' } }),
      })
      const strategy = outgoing.strategy(configOf(server.url))
      const apply = async (caller: Caller | undefined): Promise<void> => {
        await strategy.apply(testRequest({ headers: {} }), caller)
      }
      await t.rejects(apply(testCaller()), { code: codes[refusal] }, name)
      if (type !== 'obo') {
        // The gateway's own token, so signing in again does not help.
        const own = refusal === 'temporary' ? 'BACKEND_AUTH_UNAVAILABLE' : 'BACKEND_AUTH_FAILED'
        await t.rejects(apply(undefined), { code: own }, `${name}, for a health check`)
      }
      await Promise.all([outgoing.close(), server.close()])
    }
  })
}
