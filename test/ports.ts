/**
 * For a test that listens again on a port, and for one that needs a port where nobody listens: any port that the system has given out (that
 * of a server which asked for 0) can belong to another process as soon as the server is closed.
 */
export { stablePort } from '../src/embedded_postgres/stable_port.ts';
