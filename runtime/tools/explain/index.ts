/** Public API of the explain tool. */
export { explain } from './explain.ts'
export type { ExplainQuestion, Explanation } from './types.ts'
