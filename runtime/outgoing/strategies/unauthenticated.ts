/** Adds no credential. Source: docs/reference/specification/external-auth.md (type unauthenticated). */
import type { StrategyModule } from '../config.ts'

export const unauthenticated: StrategyModule = {
  problems: () => [],
  make: () => ({
    type: 'unauthenticated',
    perCaller: false,
    headerNames: [],
    apply() {},
    refused: () => false,
  }),
}
