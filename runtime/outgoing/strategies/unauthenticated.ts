/** No credential is added. Source: spec document 2 (type unauthenticated). */
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
