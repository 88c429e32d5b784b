/** Public API of the doctor. Exports the tables behind the doctor's reference page. */
export { codes } from './report/codes.ts'
export { profiles } from './profiles/index.ts'
