/**
 * Public API of the explain module: why somebody can or cannot use a tool, prompt or resource of a virtual server. Works
 * on plain data of a server, running or not, and asks nobody.
 */
export { explain } from './explain.ts'
export type { ExplainQuestion, Explanation } from './types.ts'
