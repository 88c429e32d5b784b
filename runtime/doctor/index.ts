/** Public API of the doctor module: checks of every hop between an MCP client and a server, and known identity providers. */
export type { Finding, Result } from './report/finding.ts'
export { profileNamed, profiles } from './profiles/index.ts'
export { type Examination, type ExamineOptions, examineRemote } from './remote/examine.ts'
