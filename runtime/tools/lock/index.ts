/** Public API of the lock tool: locks that the proxy and the virtual server read, store or change while running. */
export { makeApprover } from './approval/approver.ts'
export { lockFile, lockFolder, type LockStorage } from './stored-locks.ts'
export { proxyLocks } from './targets.ts'
