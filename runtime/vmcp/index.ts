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
export { type StartOptions, startVmcp, type VmcpServer } from './server/server.ts'
