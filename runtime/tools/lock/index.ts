/** Public API of the lock tool: locks that the proxy and the vMCP read, keep or change while they run. */
export { makeApprover } from './approval/approver.ts'
export { proxyLocks } from './targets.ts'
export { lockFile, lockFolder, type LockPlace } from './stored-locks.ts'
