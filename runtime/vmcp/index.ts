/** Public API of the virtual server. */
export type { Clock } from './clock.ts'
export type {
  Ask,
  AskReply,
  Client,
  ClientAbilities,
  Middleware,
  Operation,
  Outcome,
} from './pipeline/operation.ts'
export { checkAll, checkStart, startWarnings } from './server/start-check.ts'
export type { StartOptions, VmcpServer } from './server/options.ts'
export { startVmcp } from './server/server.ts'
