/** Public API of the lock tool: the proxy and the vMCP use it to read, store and change locks at run time. */
export { makeApprover } from './approval/approver.ts'
export { proxyLocks } from './targets.ts'
export { lockFile, lockFolder, type LockPlace } from './stored-locks.ts'
