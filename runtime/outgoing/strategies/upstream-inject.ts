/**
 * Sends the caller's token from an upstream provider.
 * Source: docs/reference/specification/external-auth.md#upstreamInject (upstreamInject).
 */
import type { StrategyModule } from '../config.ts'
import { providerViolations } from '../config.ts'
import type { Caller } from '../../net/index.ts'
import { type OutgoingRequest, setBearer } from '../strategy.ts'
import { subjectToken, tokenTypes } from '../subject.ts'

export const upstreamInject: StrategyModule = {
  problems({ upstreamInject: block }, parts) {
    if (!block) return [{ path: 'upstreamInject', message: 'is required' }]
    if (!block.providerName) return [{ path: 'upstreamInject.providerName', message: 'is required' }]
    return providerViolations('upstreamInject.providerName', block.providerName, parts)
  },
  make({ upstreamInject: block = {} }, parts) {
    const subject = { provider: block.providerName, tokenType: tokenTypes.access_token }
    const used = new WeakMap<OutgoingRequest, { readonly caller: Caller; readonly token: string }>()
    return {
      type: 'upstream_inject',
      perCaller: true,
      headerNames: ['authorization'],
      async apply(request, caller, signal) {
        if (!caller) return
        const token = await subjectToken(caller, subject, parts.upstream, signal)
        setBearer(request.headers, token)
        used.set(request, { caller, token })
      },
      refused(request) {
        const { caller, token } = used.get(request) ?? {}
        if (!caller || token === undefined || !subject.provider) return false
        return parts.upstream?.refused?.(caller, subject.provider, token) ?? false
      },
    }
  },
}
