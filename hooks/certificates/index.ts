/** Public API of the certificates module: the command that the hooks program carries, and what tests need of its parts. */
export { addCertificatesCommand } from './command.ts'
