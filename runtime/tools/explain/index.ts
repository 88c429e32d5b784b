/**
 * Public API of the explain tool: why a caller can or cannot use a tool, prompt or resource of a virtual server. Works
 * on plain data of a running or configured server, and makes no requests.
 */
export { explain } from './explain.ts'
export type { ExplainQuestion, Explanation } from './types.ts'
