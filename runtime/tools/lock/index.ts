/** Public API of the lock tool: locks that the proxy and the vMCP read, store or change at run time. */
export { makeApprover } from './approval/approver.ts'
export { proxyLocks } from './targets.ts'
export { lockFile, lockFolder, type LockStorage } from './stored-locks.ts'
