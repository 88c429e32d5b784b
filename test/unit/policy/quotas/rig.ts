/** Quotas on a store and a clock that the test controls. */
import type { Quota } from '../../../../schemas/index.ts'
import { makeCaller } from '../../../../runtime/net/index.ts'
import { makeQuotas, type QuotaEvent, type QuotaUse } from '../../../../runtime/policy/index.ts'
import type { QuotaOptions } from '../../../../runtime/policy/quotas/quotas.ts'
import type { Store } from '../../../../runtime/store/index.ts'

export const quota = (more: Partial<Quota> = {}): Quota => ({
  name: 'q',
  per: 'user',
  window: 'day',
  limit: 2,
  unit: 'calls',
  action: 'block',
  ...more,
})

export const callerOf = (subject: string, claims: Record<string, unknown> = {}) =>
  makeCaller({ issuer: 'https://idp.example', subject, claims: { sub: subject, ...claims } })

const ada = callerOf('ada')

export function quotasOn(store: Store, quotas: readonly Quota[], more: Partial<QuotaOptions> = {}) {
  const events: QuotaEvent[] = []
  const made = makeQuotas({
    quotas,
    store,
    namespace: 'team',
    server: 'front',
    now: Date.now,
    observe: (event) => events.push(event),
    ...more,
  })
  const reserve = (caller = ada, tool = 'echo', backend = 'b') => made.reserve({ caller, backend, tool })
  return {
    events,
    kinds: () => events.map(({ kind }) => kind),
    settled: () => made.settled(),
    reserve,
    /** Returns the error code of a rejected call, or undefined for a call that was made. */
    async call(use: Partial<QuotaUse> = {}, caller = ada, tool = 'echo'): Promise<string | undefined> {
      try {
        const reservation = await reserve(caller, tool)
        reservation?.settle({ sent: true, bytes: 0, ...use })
        return undefined
      } catch (error) {
        return (error as { code?: string }).code
      }
    },
  }
}
