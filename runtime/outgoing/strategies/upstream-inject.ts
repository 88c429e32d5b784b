/** The caller's own token of an upstream provider. Source: docs/specification/external-auth.md#upstreamInject (upstreamInject). */
import type { StrategyModule } from '../config.ts'
import { providerViolations } from '../config.ts'
import { setBearer } from '../strategy.ts'
import { subjectToken, tokenTypes } from '../subject.ts'

export const upstreamInject: StrategyModule = {
  problems({ upstreamInject: block }, parts) {
    if (!block) return [{ path: 'upstreamInject', message: 'is required' }]
    if (!block.providerName) return [{ path: 'upstreamInject.providerName', message: 'is required' }]
    return providerViolations('upstreamInject.providerName', block.providerName, parts)
  },
  make({ upstreamInject: block = {} }, parts) {
    const subject = { provider: block.providerName, tokenType: tokenTypes.access_token }
    return {
      type: 'upstream_inject',
      perCaller: true,
      headerNames: ['authorization'],
      async apply(request, caller, signal) {
        if (caller) setBearer(request.headers, await subjectToken(caller, subject, parts.upstream, signal))
      },
      refused: () => false,
    }
  },
}
