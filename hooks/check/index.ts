/** Public API of the check module: the command that the hooks program carries. */
export { addCheckCommand } from './command.ts'
