/** Public API of the virtual server. */
export { checkAll, checkStart, startWarnings } from './server/start-check.ts'
export type { StartOptions, VmcpServer } from './server/options.ts'
export { startVmcp } from './server/server.ts'
